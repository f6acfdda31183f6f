import { describeVerdict } from '../../../kernel/nft/describe-rule.ts';
import { type Field, splitValues, types } from '../../../kernel/nft/fields.ts';
import type { Element } from '../../../kernel/nft/objects.ts';
import { type Family, formatIP } from '../../../model/ip.ts';
import { portalSetDefinition, portalTable, type SetName } from '../portals/layout.ts';
import { portToBeOpened } from './wanted-services.ts';

/** nft's names of protocols. */
const protocols: Readonly<Record<number, string>> = { 6: 'tcp', 17: 'udp', 132: 'sctp' };

/** A key of one of our sets as nft prints it: `10.96.0.1 . tcp . 80`. A range ends with its last value. */
export function showKey(family: Family, set: SetName, { key, keyEnd, intervalEnd }: Element): string {
  const { key: fields } = portalSetDefinition(family, set);
  const firsts = splitValues(fields, key);
  const lasts = keyEnd ? splitValues(fields, keyEnd) : firsts;
  const parts = fields.map((field, i) => {
    const [first, last] = [firsts, lasts].map((values) => showValue(field, values[i] ?? new Uint8Array()));
    return first === last ? first : `${first}-${last}`;
  });
  return `${intervalEnd ? 'before ' : ''}${parts.join(' . ')}`;
}

/** What an element leads to; `present` for those of plain sets. */
export function showMeaning({ data, verdict, comment }: Element): string {
  const target = verdict ? describeVerdict(verdict) : data && showPort(data);
  if (target === undefined) return 'present';
  return comment === undefined ? target : `${target} comment ${JSON.stringify(comment)}`;
}

/** An element as a command of nft would have it. */
export function showElement(family: Family, set: SetName, element: Element): string {
  const { family: tableFamily, name } = portalTable(family);
  const key = showKey(family, set, element);
  const comment = element.comment === undefined ? '' : ` comment ${JSON.stringify(element.comment)}`;
  const { comment: _, ...bare } = element;
  const isMap = element.verdict !== undefined || element.data !== undefined;
  const meaning = isMap ? ` : ${showMeaning(bare)}` : '';
  return `element ${tableFamily} ${name} ${set} { ${key}${comment}${meaning} }`;
}

function showValue(field: Field, value: Uint8Array): string {
  if (field.type === types.inetProto.type) return protocols[value[0] ?? 0] ?? String(value[0]);
  if (field.type === types.inetService.type) return String(portOf(value));
  return formatIP({ family: field.type === types.ipv4Addr.type ? 'IPv4' : 'IPv6', bytes: value });
}

function showPort(data: Uint8Array): string {
  const port = portOf(data);
  return port === portToBeOpened ? 'the port of a socket to be opened' : String(port);
}

/** Two bytes in network order. */
export function portOf(bytes: Uint8Array): number {
  return ((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0);
}
