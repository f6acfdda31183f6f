import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { API_PATH, type LogReport } from '../../inspect/api.ts';
import { requireSameKernel, textOf } from '../same-kernel.ts';
import type { Pages } from '../source.ts';

/** A file of the archive. `open` rejects, or throws while it is read, with the reason why it cannot be collected. */
export interface BundlePart {
  readonly name: string;
  readonly open: () => AsyncIterable<string> | Promise<AsyncIterable<string> | Iterable<string>>;
}

const reports = ['status', 'node', 'services', 'endpoints', 'diff', 'journal'] as const;

/** Rules of the kernel, by the programs that show them. */
const ruleLists = [
  ['rules/nft.txt', 'nft', '-a', 'list', 'ruleset'],
  ['rules/iptables-save.txt', 'iptables-save', '-c'],
  ['rules/ip6tables-save.txt', 'ip6tables-save', '-c'],
] as const;

const ipvsList = '/proc/net/ip_vs';

/** Everything that goes into an archive, in its order. Nothing of it is a kubeconfig, a Secret or the environment. */
export function bundleParts(pages: Pages): BundlePart[] {
  return [
    ...reports.map((name) => ({ name: `${name}.json`, open: () => pages.page(API_PATH + name) })),
    { name: 'log.txt', open: () => logRecords(pages) },
    { name: 'metrics.txt', open: () => pages.page('/metrics') },
    { name: 'configz.json', open: () => pages.page('/configz') },
    ...ruleLists.map(([name, program, ...args]) => ({
      name,
      open: async () => {
        await requireSameKernel(pages);
        return outputOf(program, args);
      },
    })),
    {
      name: 'rules/ipvs.txt',
      open: async () => {
        await requireSameKernel(pages);
        if (!existsSync(ipvsList)) throw new Error('this kernel has not loaded IPVS');
        return [readFileSync(ipvsList, 'utf8')];
      },
    },
    // Last: to count traffic, the proxy adds a table of its own to the kernel, which the rules above should not show.
    { name: 'traffic.json', open: () => pages.page(`${API_PATH}traffic`) },
  ];
}

async function logRecords(pages: Pages): Promise<string[]> {
  const { items } = JSON.parse(await textOf(pages, 'log')) as LogReport;
  return items.map(({ record }) => record);
}

/** The output of a program, in pieces; throws its error when it cannot be started or fails. */
async function* outputOf(program: string, args: readonly string[]): AsyncGenerator<string> {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let complaint = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaint = (complaint + text).slice(0, 1_000);
  });
  const closed = once(child, 'close');
  // Awaited below; a program that cannot be started rejects it before.
  closed.catch(() => {});
  yield* child.stdout.setEncoding('utf8');
  const [code] = await closed;
  if (code !== 0) throw new Error(`${program} exits with ${code}: ${complaint.trim()}`);
}
