import type { ICommandBox } from '../control/operations.js';
import { trans } from '../translation.js';

/** Name where commands run, in few words and in a sentence. */
export function sandboxLabels({ place, network }: ICommandBox): {
  readonly label: string;
  readonly explanation: string;
} {
  switch (place) {
    case 'none':
      return {
        label: trans.__('no sandbox'),
        explanation: trans.__(
          'Agents’ commands have your files and your network. The setting sandbox changes that.'
        )
      };
    case 'missing':
      return {
        label: trans.__('no sandbox here'),
        explanation: trans.__(
          'This machine has no sandbox, so agents’ commands have your files and your network. %oh_doctor says why.'
        )
      };
    case 'refused':
      return {
        label: trans.__('no sandbox, no commands'),
        explanation: trans.__(
          'The setting requires a sandbox, which this machine does not have. %oh_doctor says why.'
        )
      };
    default:
      return {
        label: trans.__('sandbox, %1', networkLabel(network)),
        explanation:
          place === 'kernel'
            ? trans.__('The whole kernel runs in a sandbox.')
            : trans.__('Agents’ commands run in a sandbox.')
      };
  }
}

function networkLabel(network: string): string {
  const labels: Record<string, string> = {
    none: trans.__('no network'),
    listed: trans.__('listed hosts'),
    ask: trans.__('hosts you approve'),
    host: trans.__('whole network')
  };
  return labels[network] ?? network;
}
