import { DeliveriesModel } from '../deliveries/model.js';
import { DeliveriesPanel } from '../deliveries/panel.js';
import { CommandIDs } from '../ids.js';
import { ohIcon } from '../log/icons.js';
import { trans } from '../translation.js';
import { inTab, tabPlugin } from './registration.js';

/** Tab that lists undelivered webhook requests of a store and sends them again. */
export const deliveriesPlugin = tabPlugin(
  'oh-jupyter:deliveries',
  'Adds a tab with the changes that a webhook has not delivered.',
  runtime => ({
    command: CommandIDs.showDeliveries,
    name: 'deliveries',
    options: {
      label: trans.__('Show Webhook Deliveries'),
      caption: trans.__('List the changes that a webhook has not delivered'),
      icon: ohIcon
    },
    create: () => {
      const panel = new DeliveriesPanel(new DeliveriesModel(runtime));
      return inTab(panel, 'deliveries', trans.__('Deliveries'));
    }
  })
);
