/** Ids of the commands, for menus and other extensions. */
export const CommandIDs = {
  addCell: 'oh-jupyter:add-cell',
  askAgent: 'oh-jupyter:ask-agent',
  approve: 'oh-jupyter:approve',
  connectAgent: 'oh-jupyter:copy-connect-command',
  copyAction: 'oh-jupyter:copy-action',
  load: 'oh-jupyter:load',
  newNotebook: 'oh-jupyter:new-notebook',
  reject: 'oh-jupyter:reject',
  reviewKeep: 'oh-jupyter:review-keep',
  reviewKeepAll: 'oh-jupyter:review-keep-all',
  reviewNext: 'oh-jupyter:review-next',
  reviewPrevious: 'oh-jupyter:review-previous',
  reviewUndo: 'oh-jupyter:review-undo',
  reviewUndoAll: 'oh-jupyter:review-undo-all',
  rewind: 'oh-jupyter:rewind',
  showBrowser: 'oh-jupyter:show-browser',
  showDeliveries: 'oh-jupyter:show-deliveries',
  showChanges: 'oh-jupyter:show-changes',
  showStore: 'oh-jupyter:show-store',
  showLog: 'oh-jupyter:show-log',
  stop: 'oh-jupyter:stop'
} as const;
