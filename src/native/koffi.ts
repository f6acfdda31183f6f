import type { KoffiFunc } from 'koffi';

export type Koffi = typeof import('koffi').default;
/** A function of the C library that returns an integer. */
export type Call<A extends unknown[]> = KoffiFunc<(...args: A) => number>;

/** Loads the FFI library. Loading is lazy, because not every command needs it. Throws on 32-bit machines. */
export async function loadKoffi(): Promise<Koffi> {
  const { default: koffi } = await import('koffi');
  if (koffi.sizeof('void *') !== 8) throw new Error('only 64-bit machines are supported');
  return koffi;
}
