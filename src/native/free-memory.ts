import { type Call, loadKoffi } from './koffi.ts';

/**
 * Returns memory that the C library keeps for later allocations to the kernel. Returns false where the library has no
 * function for it, as musl.
 */
export async function returnFreeMemory(): Promise<boolean> {
  const library = (await loadKoffi()).load(null);
  let trim: Call<[number]>;
  try {
    trim = library.func('int malloc_trim(size_t keep)');
  } catch {
    return false;
  }
  trim(0);
  return true;
}
