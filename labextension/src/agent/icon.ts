import { LabIcon } from '@jupyterlab/ui-components';

import agentSvg from '../../style/icons/agent.svg';

/** Icon of the panel and its command. */
export const agentIcon = new LabIcon({
  name: 'oh-jupyter:agent',
  svgstr: agentSvg
});
