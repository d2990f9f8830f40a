import { isRecord, text } from '../events/wire.js';

/** Settings in the notebook's folder that can loosen what limits agents. */
export interface IUntrustedSettings {
  readonly file: string;
  /** Identifies the contents of the file. */
  readonly digest: string;
  /** Names and values. */
  readonly settings: readonly (readonly [string, string])[];
}

/** Parse the settings that need a person's trust; null if there are none. */
export function readUntrusted(fields: unknown): IUntrustedSettings | null {
  if (!isRecord(fields) || !Array.isArray(fields.settings)) {
    return null;
  }
  const settings = fields.settings
    .filter((each): each is unknown[] => Array.isArray(each))
    .map(([name, value]) => [String(name), String(value)] as const);
  return settings.length > 0
    ? { file: text(fields, 'file'), digest: text(fields, 'digest'), settings }
    : null;
}
