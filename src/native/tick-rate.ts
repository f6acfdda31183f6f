import { type Call, loadKoffi } from './koffi.ts';

const CLOCK_MONOTONIC_COARSE = 6;

/** Ticks per second of the kernel (CONFIG_HZ): the resolution of its coarse clocks is one tick. */
export async function tickRate(): Promise<number> {
  const koffi = await loadKoffi();
  const resolutionOf: Call<[number, BigInt64Array]> = koffi
    .load(null)
    .func('int clock_getres(int clock, void *resolution)');
  const resolution = new BigInt64Array(2);
  if (resolutionOf(CLOCK_MONOTONIC_COARSE, resolution) !== 0) throw new Error('clock_getres failed');
  return Math.round(1e9 / Number(resolution[1] || 1n));
}
