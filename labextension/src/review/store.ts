import { PathStorage } from '../storage.js';
import type { IStoredReview } from './model.js';

/** Largest stored review, in characters: browsers limit all of a site's data. */
const MAX_CHARS = 1_000_000;

/** Review with the name of the agent that made the last change. */
export interface INamedReview extends IStoredReview {
  readonly agent: string;
}

/** Reviews by the paths of their documents, which survive a reload of the page. */
export class ReviewStore {
  /** @param scope - Distinguishes servers at one address. */
  constructor(storage: Storage, scope: string) {
    this._texts = new PathStorage(storage, 'review', scope);
  }

  load(path: string): INamedReview | null {
    const stored = this._texts.load(path);
    return stored === null ? null : (JSON.parse(stored) as INamedReview);
  }

  save(path: string, review: INamedReview | null): void {
    this._texts.save(path, review === null ? null : serialized(review));
  }

  private readonly _texts: PathStorage;
}

/** Serialize a review, without the outputs of deleted cells if they are large. */
function serialized(review: INamedReview): string | null {
  const whole = JSON.stringify(review);
  if (whole.length <= MAX_CHARS) {
    return whole;
  }
  const less = JSON.stringify(review, (key, value: unknown) =>
    key === 'outputs' || key === 'attachments' ? undefined : value
  );
  return less.length <= MAX_CHARS ? less : null;
}
