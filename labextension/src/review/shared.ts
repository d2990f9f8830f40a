import type { ICellChanges, Review } from './model.js';
import type { Hunk, ReviewedText } from './text.js';

/** Awareness of a shared document: a state of each window, visible in all of them. */
export interface IAwareness {
  readonly clientID: number;
  getStates(): ReadonlyMap<number, Record<string, unknown>>;
  setLocalStateField(field: string, value: unknown): void;
  on(event: 'change', listener: () => void): void;
  off(event: 'change', listener: () => void): void;
}

/** A change that someone kept. */
interface IKept {
  /** Number of the decision in its window, from 1. */
  readonly number: number;
  readonly id: string;
  /** Digest of a hunk, or of all changes of the cell; other windows may show others. */
  readonly digest: string;
}

const FIELD = 'ohJupyterKept';

/** Number of decisions that each window shows the others. */
const MAX_SHOWN = 50;

/** Changes that people keep in a shared document: as no edit tells the others, they are shown here. */
export class SharedKeeps {
  constructor(
    private readonly _awareness: IAwareness,
    private readonly _review: Review
  ) {
    this._awareness.on('change', this._follow);
  }

  dispose(): void {
    this._awareness.off('change', this._follow);
  }

  /** Tell others of a hunk that is about to be kept. */
  tellHunk(id: string, hunk: Hunk): void {
    const text = this._review.cell(id)?.text;
    if (text) {
      this._tell([[id, digestOf(text, hunk)]]);
    }
  }

  /** Tell others of cells that are about to be kept, or all. */
  tell(id: string | null): void {
    const { cells } = this._review;
    const kept = cells.filter(each => id === null || each.id === id);
    this._tell(kept.map(each => [each.id, digestOfCell(each)]));
  }

  private _tell(kept: readonly (readonly [string, string])[]): void {
    for (const [id, digest] of kept) {
      this._told.push({ number: ++this._number, id, digest });
    }
    this._told = this._told.slice(-MAX_SHOWN);
    this._awareness.setLocalStateField(FIELD, this._told);
  }

  private readonly _follow = (): void => {
    for (const [client, state] of this._awareness.getStates()) {
      if (client !== this._awareness.clientID && Array.isArray(state[FIELD])) {
        const known = this._known.get(client) ?? 0;
        for (const each of state[FIELD] as IKept[]) {
          if (each.number > known) {
            this._known.set(client, each.number);
            this._keep(each);
          }
        }
      }
    }
  };

  private _keep({ id, digest }: IKept): void {
    const cell = this._review.cell(id);
    const text = cell?.text;
    const hunk = text?.hunks.find(each => digestOf(text, each) === digest);
    if (hunk) {
      this._review.keepHunk(id, hunk);
    } else if (cell && digestOfCell(cell) === digest) {
      this._review.keep(id);
    }
  }

  private _number = 0;
  private _told: IKept[] = [];
  private readonly _known = new Map<number, number>();
}

function digestOf({ base, now }: ReviewedText, hunk: Hunk): string {
  const { fromA, toA, fromB, toB } = hunk;
  const lines = [base.slice(fromA, toA), now.slice(fromB, toB)];
  return `${fromB} ${lines.map(hash).join(' ')}`;
}

function digestOfCell({ text, deleted, ...flags }: ICellChanges): string {
  const { isAdded, isMoved, typeBefore } = flags;
  const hunks = text?.hunks.map(each => digestOf(text, each)) ?? [];
  const source = deleted && hash(String(deleted.source));
  return JSON.stringify([isAdded, isMoved, typeBefore, source, hunks]);
}

function hash(text: string): number {
  let sum = 0;
  for (let at = 0; at < text.length; at++) {
    sum = (Math.imul(sum, 31) + text.charCodeAt(at)) | 0;
  }
  return sum;
}
