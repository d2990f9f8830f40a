/** The first folder of a path names a kernel; the rest is a path in its store. */
const KERNEL_CHARS = 8;

/** Path in the drive. */
export interface IStorePath {
  /** First characters of the kernel's id; "" at the root. */
  readonly kernel: string;
  readonly folder: string;
  readonly path: string;
}

/** Return a kernel's folder: its name and a part of its id. */
export function kernelFolder(name: string, id: string): string {
  return `${name.replaceAll('/', '∕')} ${id.slice(0, KERNEL_CHARS)}`;
}

export function parsePath(localPath: string): IStorePath {
  const [folder = '', ...rest] = localPath.split('/').filter(Boolean);
  return { kernel: folder.slice(-KERNEL_CHARS), folder, path: rest.join('/') };
}

/** Return a name that is not taken: `a.txt`, `a-1.txt`, … */
export function freeName(wanted: string, names: ReadonlySet<string>): string {
  const dot = wanted.lastIndexOf('.');
  const [stem, extension] =
    dot > 0 ? [wanted.slice(0, dot), wanted.slice(dot)] : [wanted, ''];
  let name = wanted;
  for (let count = 1; names.has(name); count++) {
    name = `${stem}-${count}${extension}`;
  }
  return name;
}
