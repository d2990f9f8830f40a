import { Clipboard, Notification } from '@jupyterlab/apputils';

import { trans } from './translation.js';

/** Options of a toast; without `autoClose`, only the status bar counts a notification. */
export const TOAST = { autoClose: 6000 };

/** Copy a shell command and show what was copied. */
export function copyCommand(command: string): void {
  Clipboard.copyToSystem(command);
  Notification.success(trans.__('Copied: %1', command), TOAST);
}
