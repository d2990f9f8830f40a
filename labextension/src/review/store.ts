import type { IStoredReview } from './model.js';

const PREFIX = 'oh-jupyter:review:';

/** Largest stored review, in characters: browsers limit all of a site's data. */
const MAX_CHARS = 1_000_000;

/** Reviews by the paths of their documents, which survive a reload of the page. */
export class ReviewStore {
  /** @param scope - Distinguishes servers at one address. */
  constructor(
    private readonly _storage: Storage,
    private readonly _scope: string
  ) {}

  load(path: string): IStoredReview | null {
    const stored = this._storage.getItem(this._key(path));
    return stored === null ? null : (JSON.parse(stored) as IStoredReview);
  }

  save(path: string, review: IStoredReview | null): void {
    const stored = review === null ? null : serialized(review);
    if (stored === null) {
      this._storage.removeItem(this._key(path));
      return;
    }
    try {
      this._storage.setItem(this._key(path), stored);
    } catch {
      // The browser's space is used up.
      this._storage.removeItem(this._key(path));
    }
  }

  private _key(path: string): string {
    return `${PREFIX}${this._scope}:${path}`;
  }
}

/** Serialize a review, without the outputs of deleted cells if they are large. */
function serialized(review: IStoredReview): string | null {
  const whole = JSON.stringify(review);
  if (whole.length <= MAX_CHARS) {
    return whole;
  }
  const less = JSON.stringify(review, (key, value: unknown) =>
    key === 'outputs' || key === 'attachments' ? undefined : value
  );
  return less.length <= MAX_CHARS ? less : null;
}
