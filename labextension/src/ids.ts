/** The commands by which people, menus and other extensions reach what there is. */
export const CommandIDs = {
  addCell: 'oh-jupyter:add-cell',
  approve: 'oh-jupyter:approve',
  reject: 'oh-jupyter:reject',
  showLog: 'oh-jupyter:show-log'
} as const;
