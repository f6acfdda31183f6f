import { guardChains } from '../../src/backends/nftables/guard-chains.ts';
import { runInNode } from '../contract/node-commands.ts';
import { type Element, NftTable } from './nft-table.ts';

/**
 * What the kernel holds for services, as sorted lines that do not depend on history: numbers, slots and ports that were
 * given out in the order of events are replaced by what they stand for. Records of client affinity are left out.
 */
export function rulesetOf(mode: string): Promise<string[]> {
  switch (mode) {
    case 'nftables':
      return ofBothTables('kube-proxy', nftablesLines);
    case 'userspace':
      return ofBothTables('kube-proxy-userspace', userspaceLines);
    case 'ipvs':
      return ipvsLines();
    default:
      return iptablesLines();
  }
}

async function ofBothTables(name: string, linesOf: (table: NftTable) => string[]): Promise<string[]> {
  const tables = await Promise.all(
    ['ip', 'ip6'].map(async (family) => [family, await NftTable.list(family, name)] as const),
  );
  return tables.flatMap(([family, table]) =>
    linesOf(table)
      .map((line) => `${family} ${line}`)
      .sort(),
  );
}

/** Slots from here on are those of the endpoints on this node. */
const FIRST_LOCAL_SLOT = 1_000_000_000;

function nftablesLines(table: NftTable): string[] {
  const handlers = valuesByKey(table.elements('handlers'));
  const used = [...table.elements('frontends'), ...table.elements('nodeports')].map(({ value }) =>
    handlers(value),
  );
  const guarded = table.elements('guarded');
  const others = [...table.elements('refused'), ...table.elements('refused-nodeports'), ...guarded];
  const services = firstKeyByValue([
    ...table.elements('sticky-services'),
    ...table.elements('sticky-nodeports'),
  ]);
  const members = valuesByKey([
    ...table.elements('sticky-members'),
    ...table.elements('sticky-local-members'),
  ]);
  const sticky = (number: string): string => `${services(`${number.split(':')[0]}:0`)}`;
  const rewrite: Readonly<Record<string, (element: Element) => string | undefined>> = {
    handlers: () => undefined,
    clients: () => undefined,
    frontends: ({ key, value }) => `${key.join(' . ')} : ${handlers(value)}`,
    nodeports: ({ key, value }) => `${key.join(' . ')} : ${handlers(value)}`,
    endpoints: slotless,
    'nodeport-endpoints': slotless,
    'sticky-services': ({ key, value }) => `${key.join(' . ')} : ${services(value)}`,
    'sticky-nodeports': ({ key, value }) => `${key.join(' . ')} : ${services(value)}`,
    'sticky-slots': ({ key: [list = ''], value }) =>
      `${sticky(list)} list ${list.split(':')[1]} : ${members(value)}`,
    'sticky-members': ({ key: [member = ''], value }) => `${sticky(member)} : ${value}`,
    'sticky-local-members': ({ key: [member = ''], value }) => `${sticky(member)} : ${value}`,
  };
  // They are removed a minute after the last source range.
  const idle = guarded.length === 0 ? guardChains : [];
  const verdicts = [...used, ...others.map(({ value }) => value)];
  return [...table.reachableRules(verdicts, idle), ...setLines(table, rewrite)];
}

function slotless({ key, value }: Element): string {
  const list = Number(key.at(-1)) >= FIRST_LOCAL_SLOT ? 'local' : 'all';
  return `${key.slice(0, -1).join(' . ')} . ${list} : ${value}`;
}

function userspaceLines(table: NftTable): string[] {
  const portals = ['', 'near-', 'pod-'].flatMap((who) => [`${who}portals`, `${who}nodeports`]);
  // Ports of TCP and UDP may have the same number.
  const portOf = ({ key, value }: Element) => `${key.at(-2)} ${value}`;
  const ports = firstKeyByValue(
    portals.flatMap((name) => table.elements(name)).map((each) => ({ ...each, value: portOf(each) })),
  );
  const portal = (each: Element) => `${each.key.join(' . ')} : the port of ${ports(portOf(each))}`;
  const verdicts = [...table.elements('refused'), ...table.elements('refused-nodeports')].map(
    ({ value }) => value,
  );
  const rewrite = {
    ...Object.fromEntries(portals.map((name) => [name, portal])),
    // The kernel chooses them.
    'return-ports': ({ key }: Element) => `${key.join(' . ')} : a port`,
    'proxy-ports': ({ key: [protocol, port = ''] }: Element) =>
      `${protocol} the port of ${ports(`${protocol} ${port}`)}`,
  };
  return [...table.reachableRules(verdicts), ...setLines(table, rewrite)];
}

function setLines(
  { sets }: NftTable,
  rewrite: Readonly<Record<string, (element: Element) => string | undefined>>,
): string[] {
  return [...sets].flatMap(([name, elements]) =>
    elements.flatMap((element) => {
      const text = (rewrite[name] ?? plain)(element);
      return text === undefined ? [] : [`${name} ${text}`];
    }),
  );
}

function plain({ key, value }: Element): string {
  return `${key.join(' . ')} : ${value}`;
}

function valuesByKey(elements: readonly Element[]): (key: string) => string {
  const values = new Map(elements.map(({ key, value }) => [key.join(' . '), value]));
  return (key) => values.get(key) ?? `nothing has number ${key}`;
}

/** For values that were given out by number: what stands for a value is the first of the keys that have it. */
function firstKeyByValue(elements: readonly Element[]): (value: string) => string {
  const keys = Map.groupBy(elements, ({ value }) => value);
  return (value) =>
    keys
      .get(value)
      ?.map(({ key }) => key.join(' . '))
      .sort()[0] ?? `nobody has ${value}`;
}

async function iptablesLines(): Promise<string[]> {
  const dumps = await Promise.all(['iptables-save', 'ip6tables-save'].map((program) => runInNode(program)));
  return dumps.flatMap((dump, i) =>
    dump
      .split('\n')
      .filter((line) => line.startsWith('-A') || line.startsWith(':'))
      .map((line) => `${i === 0 ? 'IPv4' : 'IPv6'} ${line.replace(/ \[\d+:\d+\]$/, '')}`)
      .sort(),
  );
}

/** Real servers of weight 0 are left until their connections have ended. */
async function ipvsLines(): Promise<string[]> {
  const servers = (await runInNode('ipvsadm', '-Sn')).split('\n').filter((line) => !line.includes(' -w 0'));
  const sets = (await runInNode('ipset', 'save')).split('\n').filter((line) => line.startsWith('add '));
  const addresses = (await runInNode('ip', '-o', 'addr', 'show', 'dev', 'kube-ipvs0'))
    .split('\n')
    .map((line) => line.split(/\s+/)[3] ?? '');
  return [...(await iptablesLines()), ...servers.sort(), ...sets.sort(), ...addresses.sort()];
}
