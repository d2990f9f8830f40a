import { DeliveriesModel } from '../deliveries/model.js';
import { DeliveriesPanel } from '../deliveries/panel.js';
import { CommandIDs } from '../ids.js';
import { deliveriesIcon } from '../log/icons.js';
import { trans } from '../translation.js';
import { tabPlugin } from './registration.js';

/** Tab that lists undelivered webhook requests of a store and sends them again. */
export const deliveriesPlugin = tabPlugin(
  'oh-jupyter:deliveries',
  'Adds a tab with the changes that a webhook has not delivered.',
  (runtime, commands) => ({
    command: CommandIDs.showDeliveries,
    name: 'deliveries',
    title: trans.__('Deliveries'),
    label: trans.__('Agent: Webhook Deliveries'),
    caption: trans.__('List the changes that a webhook has not delivered'),
    icon: deliveriesIcon,
    create: () => {
      const onStore = () => void commands.execute(CommandIDs.showStore);
      return new DeliveriesPanel(new DeliveriesModel(runtime), onStore);
    }
  })
);
