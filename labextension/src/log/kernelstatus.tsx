import type { ISessionContext } from '@jupyterlab/apputils';
import { UseSignal } from '@jupyterlab/ui-components';
import * as React from 'react';

import { trans } from '../translation.js';

/** State of a notebook's kernel, in JupyterLab's words. */
export function KernelStatus({ session }: { session: ISessionContext }) {
  return (
    <UseSignal signal={session.statusChanged}>
      {() => (
        <UseSignal signal={session.connectionStatusChanged}>
          {() => <Status status={session.kernelDisplayStatus} />}
        </UseSignal>
      )}
    </UseSignal>
  );
}

function Status({ status }: { status: ISessionContext.KernelDisplayStatus }) {
  const label = kernelLabel(status);
  return label ? (
    <span className={`oh-KernelStatus oh-mod-${status}`}>{label}</span>
  ) : null;
}

function kernelLabel(status: ISessionContext.KernelDisplayStatus): string {
  const labels: Record<string, string> = {
    idle: trans.__('kernel idle'),
    busy: trans.__('kernel busy'),
    starting: trans.__('kernel starting'),
    initializing: trans.__('kernel starting'),
    restarting: trans.__('kernel restarting'),
    autorestarting: trans.__('kernel restarting'),
    terminating: trans.__('kernel shutting down'),
    dead: trans.__('kernel dead'),
    connecting: trans.__('connecting'),
    disconnected: trans.__('disconnected')
  };
  return labels[status] ?? '';
}
