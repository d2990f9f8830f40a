/** The commands by which people, menus and other extensions reach what there is. */
export const CommandIDs = {
  addCell: 'oh-jupyter:add-cell',
  showLog: 'oh-jupyter:show-log'
} as const;
