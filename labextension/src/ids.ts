/** The commands by which people, menus and other extensions reach what there is. */
export const CommandIDs = {
  addCell: 'oh-jupyter:add-cell',
  approve: 'oh-jupyter:approve',
  connectAgent: 'oh-jupyter:copy-connect-command',
  copyAction: 'oh-jupyter:copy-action',
  reject: 'oh-jupyter:reject',
  rewind: 'oh-jupyter:rewind',
  showBrowser: 'oh-jupyter:show-browser',
  showLog: 'oh-jupyter:show-log',
  stop: 'oh-jupyter:stop'
} as const;
