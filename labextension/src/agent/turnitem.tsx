import { MimeModel, type IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import { trans } from '../translation.js';
import { priceLabel, type IStep, type ITurn } from './turn.js';

const MARKDOWN = 'text/markdown';

const MARKS: Readonly<Record<string, string>> = {
  pending: '○',
  in_progress: '▸',
  completed: '✓',
  failed: '✗'
};

/** Prompt with the agent's text and tool calls. */
export const TurnItem = React.memo(function TurnItem(props: {
  turn: ITurn;
  rendermime: IRenderMimeRegistry | null;
}) {
  const { turn, rendermime } = props;
  const last = turn.parts.length - 1;
  return (
    <article className="oh-Turn">
      <p className="oh-Turn-prompt">{turn.prompt}</p>
      {turn.notices.map(notice => (
        <p key={notice} className="oh-Note">
          {notice}
        </p>
      ))}
      {turn.thoughts && (
        <details className="oh-Step">
          <summary>{trans.__('Thoughts')}</summary>
          <pre>{turn.thoughts}</pre>
        </details>
      )}
      {turn.plan.length > 0 && (
        <ul className="oh-Turn-plan" aria-label={trans.__('Plan')}>
          {turn.plan.map(({ content, status }) => (
            <li key={content}>
              {MARKS[status] ?? '○'} {content}
            </li>
          ))}
        </ul>
      )}
      {turn.parts.map((part, index) =>
        typeof part === 'string' ? (
          <Said
            key={index}
            text={part}
            // Growing text is not typeset at every update.
            rendermime={index < last || turn.stopReason ? rendermime : null}
          />
        ) : (
          <Step key={index} step={part} />
        )
      )}
      <Facts turn={turn} />
    </article>
  );
});

function Step({ step }: { step: IStep }) {
  return (
    <details className={`oh-Step oh-mod-${step.status}`}>
      <summary>
        <span
          className="oh-Step-mark"
          role="img"
          aria-label={stepLabel(step.status)}
        >
          {MARKS[step.status] ?? '○'}
        </span>{' '}
        {step.title}
      </summary>
      {step.arguments && <pre>{step.arguments}</pre>}
      {step.output && <pre>{step.output}</pre>}
    </details>
  );
}

function stepLabel(status: string): string {
  const labels: Record<string, string> = {
    pending: trans.__('not started'),
    in_progress: trans.__('in progress'),
    completed: trans.__('done'),
    failed: trans.__('failed')
  };
  return labels[status] ?? status;
}

function Facts({ turn }: { turn: ITurn }) {
  const steps = turn.parts.filter(part => typeof part !== 'string').length;
  const ends: Record<string, string> = {
    '': trans.__('working…'),
    end_turn: '',
    cancelled: trans.__('stopped'),
    failed: trans.__('failed'),
    refusal: trans.__('refused')
  };
  const facts = [
    turn.agent,
    steps > 0 ? trans._n('%1 step', '%1 steps', steps) : '',
    turn.changedFiles.length > 0
      ? trans._n(
          '%1 file changed',
          '%1 files changed',
          turn.changedFiles.length
        )
      : '',
    turn.cost === null ? '' : priceLabel(turn.cost, turn.currency),
    ends[turn.stopReason] ?? turn.stopReason,
    turn.undone ? trans.__('undone') : ''
  ];
  return <p className="oh-Turn-facts">{facts.filter(Boolean).join(' · ')}</p>;
}

/** Text of an agent, as Markdown if possible. */
function Said(props: { text: string; rendermime: IRenderMimeRegistry | null }) {
  const { text, rendermime } = props;
  const host = React.useRef<HTMLDivElement>(null);
  React.useEffect(() => {
    if (!rendermime || !host.current) {
      return;
    }
    const renderer = rendermime.createRenderer(MARKDOWN);
    const model = new MimeModel({ data: { [MARKDOWN]: text } });
    void renderer.renderModel(model);
    MessageLoop.sendMessage(renderer, Widget.Msg.BeforeAttach);
    host.current.replaceChildren(renderer.node);
    MessageLoop.sendMessage(renderer, Widget.Msg.AfterAttach);
    return () => renderer.dispose();
  }, [text, rendermime]);
  return rendermime ? (
    <div className="oh-Said" ref={host} />
  ) : (
    <div className="oh-Said oh-mod-plain">{text}</div>
  );
}
