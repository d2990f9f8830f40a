import { MimeModel, type IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { MessageLoop } from '@lumino/messaging';
import { Widget } from '@lumino/widgets';
import * as React from 'react';

import type { IStep } from '../control/operations.js';
import { trans } from '../translation.js';
import { priceLabel, type ITurn } from './turn.js';

const MARKDOWN = 'text/markdown';

const MARKS: Readonly<Record<string, string>> = {
  pending: '○',
  in_progress: '▸',
  completed: '✓',
  failed: '✗'
};

/** Prompt of a turn, with the agent's plan and thoughts. */
export function TurnStart({ turn }: { turn: ITurn }) {
  return (
    <>
      <p className="oh-Turn-prompt">{turn.prompt}</p>
      {turn.attachments.length > 0 && (
        <ul className="oh-Chips" aria-label={trans.__('Context')}>
          {turn.attachments.map(name => (
            <li key={name} className="oh-Chip">
              {name}
            </li>
          ))}
        </ul>
      )}
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
    </>
  );
}

/** Use of a tool by an agent. */
export function Step({ step }: { step: IStep }) {
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

/** Sum up a turn in one line, such as “2 files, 3 cells · $0.02”. */
export function turnFacts(turn: ITurn, cells: number): string {
  const ends: Record<string, string> = {
    '': trans.__('working…'),
    end_turn: '',
    cancelled: trans.__('stopped'),
    failed: trans.__('failed'),
    refusal: trans.__('refused')
  };
  const files = turn.changed_files.length;
  const changes = [
    files > 0 ? trans._n('%1 file changed', '%1 files changed', files) : '',
    cells > 0 ? trans._n('%1 cell run', '%1 cells run', cells) : ''
  ];
  const facts = [
    changes.filter(Boolean).join(', '),
    turn.cost === null ? '' : priceLabel(turn.cost, turn.currency),
    ends[turn.stop_reason] ?? turn.stop_reason,
    turn.undone ? trans.__('undone') : ''
  ];
  return facts.filter(Boolean).join(' · ');
}

/** Text of an agent, as Markdown if possible. */
export function AgentText(props: {
  text: string;
  rendermime: IRenderMimeRegistry | null;
}) {
  const { text, rendermime } = props;
  const host = React.useRef<HTMLDivElement>(null);
  // A Lumino widget is disposed before its node leaves the document.
  React.useLayoutEffect(() => {
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
    <div className="oh-AgentText" ref={host} />
  ) : (
    <div className="oh-AgentText oh-mod-plain">{text}</div>
  );
}
