import {
  ILayoutRestorer,
  type JupyterFrontEnd,
  type JupyterFrontEndPlugin
} from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';

import { DeliveriesModel } from '../deliveries/model.js';
import { DeliveriesPanel } from '../deliveries/panel.js';
import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { IOhRuntime } from '../tokens.js';
import { addTab, inTab } from './registration.js';

/** Lists what the webhook of a store has not delivered, to send it again. */
export const deliveriesPlugin: JupyterFrontEndPlugin<void> = {
  id: 'oh-jupyter:deliveries',
  description: 'A tab with the changes that a webhook has not delivered.',
  autoStart: true,
  requires: [IOhRuntime],
  optional: [ITranslator, ICommandPalette, ILayoutRestorer],
  activate: (
    app: JupyterFrontEnd,
    runtime: IOhRuntime,
    translator: ITranslator | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null
  ): void => {
    const trans = (translator ?? nullTranslator).load('oh_jupyter');
    addTab(app, palette, restorer, trans, {
      command: CommandIDs.showDeliveries,
      name: 'deliveries',
      options: {
        label: trans.__('Show Webhook Deliveries'),
        caption: trans.__('List what the receiver of a webhook does not have'),
        icon: ohIcon
      },
      create: () => {
        const panel = new DeliveriesPanel(new DeliveriesModel(runtime), trans);
        return inTab(panel, 'deliveries', trans.__('Deliveries'));
      }
    });
  }
};
