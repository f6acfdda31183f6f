import { type Measurement, measurements, type Size, type Subject } from '../report/measurement.ts';
import type { Figures, RateFigures } from './measure.ts';
import type { Cpu } from './program.ts';

/** `1000x3,50000x10`: services and endpoints of each. */
export function parseSizes(text: string, fewestServices = 3): Size[] {
  return text.split(',').map((part) => {
    const [, services, endpoints] = /^(\d+)x(\d+)$/.exec(part.trim()) ?? [];
    if (!services || !endpoints || Number(services) < fewestServices || Number(endpoints) < 1) {
      throw new Error(
        `--sizes: ${JSON.stringify(part)} is not SERVICESxENDPOINTS with at least ${fewestServices} services`,
      );
    }
    return { services: Number(services), endpoints: Number(endpoints) };
  });
}

export function programFigures(subject: Subject, figures: Figures): Measurement[] {
  return [
    ...coldFigures(subject, figures.coldSeconds, figures.coldCpu),
    ...measurements(subject, {
      'first sync': [figures.firstSyncSeconds, 's'],
      'longest stall': [figures.stallMs, 'ms'],
      'replaced p50': [figures.replaced.p50, 'ms'],
      'replaced p99': [figures.replaced.p99, 'ms'],
      'rescaled p50': [figures.rescaled.p50, 'ms'],
      'rescaled p99': [figures.rescaled.p99, 'ms'],
    }),
    ...changeCpu(subject, figures.cpuPerChange),
    ...measurements(subject, {
      restart: [figures.restartSeconds, 's'],
      resident: [figures.residentMB, 'MB'],
      peak: [figures.peakMB, 'MB'],
    }),
  ];
}

export function coldFigures(subject: Subject, seconds: number, cpu: Cpu): Measurement[] {
  return measurements(subject, {
    cold: [seconds, 's'],
    'own CPU until then': [cpu.own / 1000, 's'],
    "kernel's CPU until then": [cpu.kernel / 1000, 's'],
  });
}

export function rateFigures(subject: Subject, figures: RateFigures): Measurement[] {
  return [
    ...measurements(subject, {
      'changes/s': [figures.changesPerSecond, ''],
      'effect p50': [figures.effect.p50, 'ms'],
      'effect p99': [figures.effect.p99, 'ms'],
      'last change to its effect': [figures.backlogMs, 'ms'],
    }),
    ...changeCpu(subject, figures.cpuPerChange),
  ];
}

function changeCpu(subject: Subject, cpu: Cpu): Measurement[] {
  return measurements(subject, {
    'own CPU per change': [cpu.own, 'ms'],
    "kernel's CPU per change": [cpu.kernel, 'ms'],
  });
}
