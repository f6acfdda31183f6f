import type { Size } from './cluster.ts';
import type { Figures, Spread } from './measure.ts';
import type { Cpu } from './program.ts';

/** A line of a table: cells by their headings. */
export type Row = Record<string, string>;

/** `1000x3,50000x10`: services and endpoints of each. */
export function parseSizes(text: string): Size[] {
  return text.split(',').map((part) => {
    const [, services, endpoints] = /^(\d+)x(\d+)$/.exec(part.trim()) ?? [];
    if (!services || !endpoints || Number(services) < 3) {
      throw new Error(`--sizes: ${JSON.stringify(part)} is not SERVICESxENDPOINTS`);
    }
    return { services: Number(services), endpoints: Number(endpoints) };
  });
}

export function programRow(size: Size, program: string, figures: Figures): Row {
  return {
    ...sizeCell(size),
    program,
    ...coldCells(figures.coldSeconds, figures.coldCpu),
    'stall (ms)': figures.stallMs.toFixed(0),
    'replaced p50/p99 (ms)': spreadCell(figures.replaced),
    'rescaled p50/p99 (ms)': spreadCell(figures.rescaled),
    'CPU per change own+kernel (ms)': cpuCell(figures.cpuPerChange, 1),
    'restart (s)': figures.restartSeconds.toFixed(2),
    'resident, peak (MB)': `${figures.residentMB.toFixed(0)}, ${figures.peakMB.toFixed(0)}`,
  };
}

export function sizeCell({ services, endpoints }: Size): Row {
  return { size: `${services.toLocaleString('en')} × ${endpoints}` };
}

export function coldCells(seconds: number, cpu: Cpu): Row {
  return { 'cold (s)': seconds.toFixed(2), 'CPU own+kernel (s)': cpuCell(cpu, 1000) };
}

export function cpuCell({ own, kernel }: Cpu, unit: number): string {
  return `${(own / unit).toFixed(2)} + ${(kernel / unit).toFixed(2)}`;
}

export function spreadCell({ p50, p99 }: Spread): string {
  return `${p50.toFixed(1)} / ${p99.toFixed(1)}`;
}
