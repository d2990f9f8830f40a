import type { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { call, keyCall } from './keys.js';
import type { BrowserModel, IBrowserView, IMark } from './model.js';

interface IPageProps {
  model: BrowserModel;
  view: IBrowserView;
  trans: TranslationBundle;
}

/** Screen pixels from which on a press is a drag. */
const DRAG_PX = 5;
const BUTTONS = ['left', 'middle', 'right'] as const;

/** The picture of the page, which takes clicks, keys and scrolling. */
export function PageView({ model, view, trans }: IPageProps) {
  const page = React.useRef<HTMLDivElement>(null);
  const pressed = React.useRef<readonly [number, number] | null>(null);
  const isDrag = React.useRef(false);
  useWheel(page, view, model);

  const place = (event: { clientX: number; clientY: number }) =>
    placeIn(page.current!, view, event);
  const onPointerUp = (event: React.PointerEvent) => {
    const from = pressed.current;
    pressed.current = null;
    if (from === null) {
      return;
    }
    const to = place(event);
    isDrag.current = Math.hypot(to[0] - from[0], to[1] - from[1]) > DRAG_PX;
    if (isDrag.current && event.button === 0) {
      model.act(call('mouse_drag_and_drop', ...from, ...to));
    }
  };
  const onClick = (event: React.MouseEvent) => {
    // The second of two quick clicks comes as a double click as well.
    if (!isDrag.current && event.detail < 2) {
      const button = BUTTONS[event.button] ?? 'left';
      model.act(call('mouse_click', ...place(event), button));
    }
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    const { key, shiftKey } = event;
    if (key === 'Escape' && shiftKey) {
      page.current?.blur();
      return;
    }
    const pressedKey = keyCall(event.nativeEvent);
    if (pressedKey !== null) {
      event.preventDefault();
      event.stopPropagation();
      model.act(pressedKey);
    }
  };
  return (
    <div className="oh-Browser-stage">
      <div
        ref={page}
        className="oh-Browser-page"
        style={{ aspectRatio: `${view.width || 16} / ${view.height || 9}` }}
        role="application"
        tabIndex={0}
        aria-label={trans.__('Page. Shift+Escape leaves it.')}
        data-lm-suppress-shortcuts="true"
        onContextMenu={event => event.preventDefault()}
        onPointerDown={event => {
          pressed.current = place(event);
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerUp={onPointerUp}
        onClick={onClick}
        onAuxClick={onClick}
        onPointerMove={event => {
          // Where the pointer hovers is told only by who has the browser.
          if (view.held && pressed.current === null) {
            model.act(call('mouse_move', ...place(event)));
          }
        }}
        onDoubleClick={event =>
          model.act(call('mouse_dblclick', ...place(event)))
        }
        onKeyDown={onKeyDown}
        onPaste={event => {
          const text = event.clipboardData.getData('text/plain');
          model.act(call('keyboard_insert_text', text));
        }}
      >
        {model.picture && (
          <img src={model.picture} alt={view.url} draggable={false} />
        )}
        {(model.marks ?? []).map(mark => (
          <Mark key={mark.bid} mark={mark} view={view} />
        ))}
      </div>
    </div>
  );
}

/** A frame round an element, with its bid above it, or inside at the page's upper edge. */
function Mark({ mark, view }: { mark: IMark; view: IBrowserView }) {
  const [x, y, width, height] = mark.bbox;
  const percent = (value: number, of: number) => `${(100 * value) / of}%`;
  return (
    <span
      className={`oh-Browser-mark ${y < 16 ? 'oh-mod-inside' : ''}`}
      style={{
        left: percent(x, view.width),
        top: percent(y, view.height),
        width: percent(width, view.width),
        height: percent(height, view.height)
      }}
    >
      <b>{mark.bid}</b>
    </span>
  );
}

/** Where an event is in the page, in its pixels. */
function placeIn(
  page: HTMLElement,
  view: IBrowserView,
  event: { clientX: number; clientY: number }
): readonly [number, number] {
  const box = page.getBoundingClientRect();
  return [
    Math.round(((event.clientX - box.left) / box.width) * view.width),
    Math.round(((event.clientY - box.top) / box.height) * view.height)
  ];
}

/** React's own wheel listeners cannot keep the panel from scrolling. */
function useWheel(
  page: React.RefObject<HTMLDivElement | null>,
  view: IBrowserView,
  model: BrowserModel
): void {
  const latest = React.useRef(view);
  latest.current = view;
  React.useEffect(() => {
    const node = page.current!;
    const onWheel = (event: WheelEvent) => {
      event.preventDefault();
      const place = placeIn(node, latest.current, event);
      model.act(call('scroll_at', ...place, event.deltaX, event.deltaY));
    };
    node.addEventListener('wheel', onWheel, { passive: false });
    return () => node.removeEventListener('wheel', onWheel);
  }, [page, model]);
}
