/** Orders of cells: the baseline's, which follows the person, and the current one. */
import { stayingIds } from '../documents/cells.js';

/** Return the ids that two orders share, but not in the same order; as few as possible. */
export function movedIds(
  from: readonly string[],
  to: readonly string[]
): ReadonlySet<string> {
  const before = new Set(from);
  const after = new Set(to);
  const shared = to.filter(id => before.has(id));
  const staying = stayingIds(
    from.filter(id => after.has(id)),
    shared,
    null
  );
  return new Set(shared.filter(id => !staying.has(id)));
}

/** Insert an id below the nearest cell above it in the current order. */
export function inserted(
  order: readonly string[],
  id: string,
  current: readonly string[]
): string[] {
  const known = new Set(order);
  const above = current
    .slice(0, current.indexOf(id))
    .filter(each => known.has(each) && each !== id)
    .at(-1);
  const rest = order.filter(each => each !== id);
  rest.splice(above === undefined ? 0 : rest.indexOf(above) + 1, 0, id);
  return rest;
}

/**
 * Apply what the person did to the current order to the baseline's.
 * @param isAgents - Returns whether an agent added or deleted a cell.
 */
export function followed(
  order: readonly string[],
  before: readonly string[],
  after: readonly string[],
  isAgents: (id: string) => boolean
): string[] {
  const was = new Set(before);
  const is = new Set(after);
  const moved = movedIds(before, after);
  let result = order.filter(id => !was.has(id) || is.has(id) || isAgents(id));
  for (const id of after) {
    const isNew = !was.has(id) && !isAgents(id);
    if (isNew || (moved.has(id) && result.includes(id))) {
      result = inserted(result, id, after);
    }
  }
  return result;
}
