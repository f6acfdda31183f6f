import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** How many descriptors of each kind a process has open, such as `tcp established` or `anon_inode:inotify`. */
export type Descriptors = ReadonlyMap<string, number>;

/** Tables in /proc/net: the column with the inode of a socket, and for TCP that with its state. */
const tables = [
  { name: 'tcp', inode: 9, state: 3 },
  { name: 'tcp6', inode: 9, state: 3 },
  { name: 'udp', inode: 9 },
  { name: 'udp6', inode: 9 },
  { name: 'unix', inode: 6 },
  { name: 'netlink', inode: 9 },
] as const;

const states: Readonly<Record<string, string>> = {
  '01': 'established',
  '02': 'connecting',
  '08': 'closed by the peer',
  '0A': 'listening',
};

/** Counts the open descriptors of a process. Sockets that are only bound are in no table, and count as `socket`. */
export function descriptorsOf(pid: number): Descriptors {
  const sockets = socketsOf(pid);
  const counts = new Map<string, number>();
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const kind = kindOf(linkOf(pid, fd), sockets);
    if (kind !== undefined) counts.set(kind, (counts.get(kind) ?? 0) + 1);
  }
  return counts;
}

export function total(descriptors: Descriptors): number {
  return [...descriptors.values()].reduce((sum, count) => sum + count, 0);
}

/** The kinds of which there are more in `later` than in `earlier`. */
export function moreText(later: Descriptors, earlier: Descriptors): string {
  const more = [...later].map(([kind, count]) => ({ kind, count: count - (earlier.get(kind) ?? 0) }));
  return more.flatMap(({ kind, count }) => (count > 0 ? [`${count} more: ${kind}`] : [])).join('; ');
}

function kindOf(link: string | undefined, sockets: ReadonlyMap<string, string>): string | undefined {
  const [, type, inode = ''] = /^(socket|pipe):\[(\d+)\]$/.exec(link ?? '') ?? [];
  if (type === undefined) return link;
  return sockets.get(inode) ?? type;
}

/** Where the link of a descriptor leads; undefined when it was closed just now. */
function linkOf(pid: number, fd: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The kind of every socket in the network namespace of the process, by inode. */
function socketsOf(pid: number): Map<string, string> {
  const kinds = new Map<string, string>();
  for (const table of tables) {
    const [, ...lines] = readFileSync(`/proc/${pid}/net/${table.name}`, 'utf8').trimEnd().split('\n');
    for (const line of lines) {
      const columns = line.trim().split(/\s+/);
      const state = 'state' in table ? (columns[table.state] ?? '') : '';
      kinds.set(columns[table.inode] ?? '', `${table.name} ${states[state] ?? state}`.trim());
    }
  }
  return kinds;
}
