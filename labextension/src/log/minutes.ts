import * as React from 'react';

export const MINUTE_MS = 60_000;

const subscribers = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Draw a component again every minute, as its relative times change; one timer serves all. */
export function useMinutes(): void {
  const [, setMinute] = React.useState(0);
  React.useEffect(() => {
    const draw = () => setMinute(minute => minute + 1);
    subscribers.add(draw);
    timer ??= setInterval(() => subscribers.forEach(each => each()), MINUTE_MS);
    return () => {
      subscribers.delete(draw);
      if (subscribers.size === 0) {
        clearInterval(timer);
        timer = undefined;
      }
    };
  }, []);
}
