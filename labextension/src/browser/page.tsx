import * as React from 'react';

import type { IBrowserMark, IBrowserView } from '../control/operations.js';
import { trans } from '../translation.js';
import { call, keyCall } from './keys.js';
import type { BrowserModel } from './model.js';

interface IPageProps {
  model: BrowserModel;
  view: IBrowserView;
}

/** A press that moves by more screen pixels is a drag. */
const DRAG_PX = 5;
const BUTTONS = ['left', 'middle', 'right'] as const;

/** Picture of the page that passes on clicks, keys and scrolling. */
export function PageView({ model, view }: IPageProps) {
  const page = React.useRef<HTMLDivElement>(null);
  const pressed = React.useRef<readonly [number, number] | null>(null);
  const isDrag = React.useRef(false);
  useWheel(page, view, model);

  const position = (event: { clientX: number; clientY: number }) =>
    positionIn(page.current!, view, event);
  const onPointerUp = (event: React.PointerEvent) => {
    const from = pressed.current;
    pressed.current = null;
    if (from === null) {
      return;
    }
    const to = position(event);
    isDrag.current = Math.hypot(to[0] - from[0], to[1] - from[1]) > DRAG_PX;
    if (isDrag.current && event.button === 0) {
      model.act(call('mouse_drag_and_drop', ...from, ...to));
    }
  };
  const onClick = (event: React.MouseEvent) => {
    // The second of two quick clicks is a double click.
    if (!isDrag.current && event.detail < 2) {
      const button = BUTTONS[event.button] ?? 'left';
      model.act(call('mouse_click', ...position(event), button));
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
          pressed.current = position(event);
          event.currentTarget.setPointerCapture(event.pointerId);
        }}
        onPointerUp={onPointerUp}
        onClick={onClick}
        onAuxClick={onClick}
        onPointerMove={event => {
          // Only the holder of the browser hovers.
          if (view.held && pressed.current === null) {
            model.act(call('mouse_move', ...position(event)));
          }
        }}
        onDoubleClick={event =>
          model.act(call('mouse_dblclick', ...position(event)))
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

/** Frame around an element, with its bid above or, at the page's upper edge, inside. */
function Mark({ mark, view }: { mark: IBrowserMark; view: IBrowserView }) {
  const [x = 0, y = 0, width = 0, height = 0] = mark.bbox;
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

/** Return an event's position in page pixels. */
function positionIn(
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

/** React's wheel listeners are passive and cannot keep the panel from scrolling. */
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
      const position = positionIn(node, latest.current, event);
      model.act(call('scroll_at', ...position, event.deltaX, event.deltaY));
    };
    node.addEventListener('wheel', onWheel, { passive: false });
    return () => node.removeEventListener('wheel', onWheel);
  }, [page, model]);
}
