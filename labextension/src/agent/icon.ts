import { LabIcon } from '@jupyterlab/ui-components';

import agentSvg from '../../style/icons/agent.svg';

/** Somebody who speaks: the panel's tab and command. */
export const agentIcon = new LabIcon({
  name: 'oh-jupyter:agent',
  svgstr: agentSvg
});
