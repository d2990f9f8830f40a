import * as React from 'react';

import { isRecord } from '../events/wire.js';
import { trans } from '../translation.js';
import type { Host } from './host.js';
import { start } from './start.js';

/** Time until the next attempt after a failed one. */
const RETRY_MS = 5000;

interface IView {
  /** Increases with every change; -1 if no page is open. */
  readonly number: number;
  readonly url: string;
  /** Data URL. */
  readonly picture: string;
}

/** Picture of the page in the shared browser, which follows the page while it is visible. */
function Page({ host }: { host: Host }) {
  const [view, setView] = React.useState<IView | null>(null);
  const [error, setError] = React.useState('');
  const [attempt, setAttempt] = React.useState(0);
  const node = React.useRef<HTMLDivElement>(null);
  const isVisible = useVisibility(node);
  React.useEffect(() => {
    if (!isVisible) {
      return;
    }
    let isWanted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const follow = async () => {
      const { notebook } = (await host.call).arguments;
      for (let known = -1; isWanted;) {
        const next = await nextView(host, known, notebook);
        if (!isWanted) {
          return;
        }
        setError('');
        if (next.number < 0) {
          setView(current => (current ? { ...current, number: -1 } : next));
          return;
        }
        if (next.number !== known) {
          setView(next);
        }
        known = next.number;
      }
    };
    follow().catch(reason => {
      if (isWanted) {
        setError(`${reason.message}`);
        timer = setTimeout(() => setAttempt(number => number + 1), RETRY_MS);
      }
    });
    return () => {
      isWanted = false;
      clearTimeout(timer);
    };
  }, [host, isVisible, attempt]);

  return (
    <div className="oh-App oh-Page" ref={node}>
      <header>
        <span className="oh-Page-address">{view?.url}</span>
        <span role="status">{stateLabel(view)}</span>
      </header>
      {error && <p role="alert">{error}</p>}
      {view?.picture && <img src={view.picture} alt={view.url} />}
    </div>
  );
}

/** Return whether an element is on the screen; hosts keep the apps of old messages. */
function useVisibility(node: React.RefObject<Element | null>): boolean {
  const [isVisible, setVisible] = React.useState(false);
  React.useEffect(() => {
    const observer = new IntersectionObserver(entries =>
      setVisible(entries.some(entry => entry.isIntersecting))
    );
    observer.observe(node.current!);
    return () => observer.disconnect();
  }, [node]);
  return isVisible;
}

/** Wait for a picture other than the known one; return the known number if none came. */
async function nextView(
  host: Host,
  known: number,
  notebook: unknown
): Promise<IView> {
  const answer = await host.callTool('page_picture', {
    known,
    ...(notebook === undefined ? {} : { notebook })
  });
  const state = isRecord(answer.structuredContent)
    ? answer.structuredContent
    : {};
  const image = answer.content.find(({ type }) => type === 'image');
  return {
    number: Number(state.number),
    url: String(state.url),
    picture: image ? `data:${image.mimeType};base64,${image.data}` : ''
  };
}

function stateLabel(view: IView | null): string {
  if (view === null) {
    return trans.__('Connecting');
  }
  return view.number < 0 ? trans.__('The browser is closed') : trans.__('Live');
}

start('oh_jupyter page', Page);
