/** Texts by the paths of documents, in a storage of the browser. */
export class PathStorage {
  /**
   * @param prefix - Distinguishes our uses of the storage.
   * @param scope - Distinguishes servers at one address.
   */
  constructor(
    private readonly _storage: Storage,
    private readonly _prefix: string,
    private readonly _scope: string
  ) {}

  load(path: string): string | null {
    return this._storage.getItem(this._key(path));
  }

  /** Store a text, or remove it with null or if the browser's space is used up. */
  save(path: string, text: string | null): void {
    const key = this._key(path);
    try {
      if (text !== null) {
        this._storage.setItem(key, text);
        return;
      }
    } catch {
      // There is no space; an older text would be wrong.
    }
    this._storage.removeItem(key);
  }

  private _key(path: string): string {
    return `oh-jupyter:${this._prefix}:${this._scope}:${path}`;
  }
}
