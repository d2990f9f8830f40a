import { PathStorage } from '../storage.js';
import type { IContextItem, IPrompt } from './context.js';

/** State of a prompt box. */
export interface IDraft {
  readonly text: string;
  readonly agent: string;
  readonly isNew: boolean;
  readonly options: Readonly<Record<string, string>>;
  readonly context: readonly IContextItem[];
  readonly queue: readonly IPrompt[];
  readonly isHeld: boolean;
  readonly sent: IPrompt | null;
}

/** Prompt boxes by the paths of their notebooks, which survive a reload of their window. */
export class Drafts {
  /**
   * @param storage - Storage of one window: each window has its own drafts.
   * @param scope - Distinguishes servers at one address.
   */
  constructor(storage: Storage, scope: string) {
    this._texts = new PathStorage(storage, 'draft', scope);
  }

  load(path: string): IDraft | null {
    const stored = this._texts.load(path);
    return stored === null ? null : (JSON.parse(stored) as IDraft);
  }

  save(path: string, draft: IDraft | null): void {
    const isEmpty = draft === null || isEmptyDraft(draft);
    this._texts.save(path, isEmpty ? null : JSON.stringify(draft));
  }

  private readonly _texts: PathStorage;
}

function isEmptyDraft({ text, context, queue, sent }: IDraft): boolean {
  return (
    text === '' && context.length === 0 && queue.length === 0 && sent === null
  );
}
