import { DeliveriesModel } from '../deliveries/model.js';
import { DeliveriesPanel } from '../deliveries/panel.js';
import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { inTab, tabPlugin } from './registration.js';

/** Lists what the webhook of a store has not delivered, to send it again. */
export const deliveriesPlugin = tabPlugin(
  'oh-jupyter:deliveries',
  'A tab with the changes that a webhook has not delivered.',
  (runtime, trans) => ({
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
  })
);
