/** The first folder of a path in the drive names a kernel, the rest is a path in its store. */
const KERNEL_CHARS = 8;

/** A place in the drive. */
export interface IStorePlace {
  /** The beginning of the kernel's id; "" at the root, where the kernels are listed. */
  readonly kernel: string;
  readonly folder: string;
  /** In the kernel's store. */
  readonly path: string;
}

/** The folder of a kernel: what people call it, and what tells it from others. */
export function kernelFolder(name: string, id: string): string {
  return `${name.replaceAll('/', '∕')} ${id.slice(0, KERNEL_CHARS)}`;
}

/** Read a path of the drive. */
export function storePlace(localPath: string): IStorePlace {
  const [folder = '', ...rest] = localPath.split('/').filter(Boolean);
  return { kernel: folder.slice(-KERNEL_CHARS), folder, path: rest.join('/') };
}

/** A name that none of the others has: `a.txt`, `a-1.txt`, … */
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
