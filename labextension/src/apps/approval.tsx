import * as React from 'react';

import { ConfirmBar } from '../confirm/bar.js';
import type { IVerdict } from '../events/api.js';
import { UNKNOWN, type ICard } from '../events/card.js';
import { reasonOf } from '../events/errors.js';
import { isRecord } from '../events/wire.js';
import { Section } from '../log/section.js';
import { trans } from '../translation.js';
import type { Host } from './host.js';
import { start } from './start.js';

/** Field of a result's `_meta` with the key of a question, which hosts do not show to models. */
const KEY = 'oh_jupyter/approval';

interface IQuestion {
  readonly key: string;
  readonly card: ICard;
}

/** Question about the Action of a tool call, while it waits for the person; otherwise nothing. */
function Approval({ host }: { host: Host }) {
  const [question, setQuestion] = React.useState<IQuestion | null>(null);
  const [outcome, setOutcome] = React.useState('');
  React.useEffect(() => {
    const controller = new AbortController();
    void host.result.then(() => controller.abort());
    follow(host, setQuestion, controller.signal)
      .catch(() => undefined) // the other places still ask
      .finally(() => setQuestion(null));
    return () => controller.abort();
  }, [host]);

  const decide = async ({ key, card }: IQuestion, verdict: IVerdict) => {
    setQuestion({ key, card: busy(card, true, '') });
    try {
      await host.callTool('decide_approval', {
        key,
        approve: verdict.approve,
        reason: verdict.why ?? '',
        scope: scopeOf(verdict)
      });
    } catch (error) {
      setQuestion({ key, card: busy(card, false, reasonOf(error)) });
      return;
    }
    setOutcome(verdict.approve ? trans.__('Approved') : trans.__('Rejected'));
    setQuestion(null);
  };

  if (question === null || question.card.confirmation === null) {
    return outcome === '' ? null : (
      <p className="oh-App-outcome" role="status">
        {outcome}
      </p>
    );
  }
  const { card } = question;
  const { diff } = question.card.confirmation;
  const message = card.action?.message ?? '';
  return (
    <div className="oh-Panel oh-App oh-mod-waiting">
      <pre className="oh-Text" tabIndex={0}>
        {message}
      </pre>
      {diff && (
        <Section
          section={{ name: 'diff', kind: 'diff', body: diff }}
          whole={false}
          workspaceDir=""
        />
      )}
      <ConfirmBar
        card={card}
        confirmation={question.card.confirmation}
        onDecide={(_, verdict) => void decide(question, verdict)}
      />
    </div>
  );
}

/** Show the questions about a call, one after another, until it is over. */
async function follow(
  host: Host,
  show: (question: IQuestion | null) => void,
  signal: AbortSignal
): Promise<void> {
  const call = await host.call;
  let known: number | undefined;
  while (!signal.aborted) {
    const answer = await host.callTool('pending_approval', {
      ...call,
      ...(known === undefined ? {} : { known })
    });
    const content = answer.structuredContent;
    const { state, question } = isRecord(content) ? content : {};
    if (signal.aborted || state === 'over') {
      return;
    }
    if (isRecord(question)) {
      known = Number(question.id);
      show({ key: String(answer._meta?.[KEY]), card: cardOf(question) });
    } else if (state !== 'same') {
      known = undefined;
      show(null);
    }
  }
}

function cardOf(question: Record<string, unknown>): ICard {
  const { seconds_left: left, sandboxed } = question;
  return {
    key: 'approval',
    generation: '',
    id: Number(question.id),
    action: {
      id: Number(question.id),
      timestamp: null,
      source: 'agent',
      message: String(question.message),
      clipped: false,
      action: '',
      args: {}
    },
    observation: null,
    lost: false,
    confirmation: {
      ...UNKNOWN,
      asked: true,
      agent: String(question.agent),
      reason: String(question.reason),
      diff: String(question.diff),
      expires: typeof left === 'number' ? Date.now() + 1000 * left : null,
      sandboxed: typeof sandboxed === 'boolean' ? sandboxed : null
    }
  };
}

function busy(card: ICard, isBusy: boolean, error: string): ICard {
  const confirmation = card.confirmation ?? UNKNOWN;
  return { ...card, confirmation: { ...confirmation, busy: isBusy, error } };
}

function scopeOf({ forSession, forWorkspace }: IVerdict): string {
  if (forWorkspace) {
    return 'workspace';
  }
  return forSession ? 'session' : 'once';
}

start('oh_jupyter approval', Approval);
