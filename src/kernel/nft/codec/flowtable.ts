import { AttributeMap } from '../../netlink/attribute-map.ts';
import type { NetlinkMessage } from '../../netlink/reader.ts';
import type { MessageWriter } from '../../netlink/writer.ts';
import {
  NF_NETDEV_INGRESS,
  NFT_FLOWTABLE_COUNTER,
  NFTA_DEVICE_NAME,
  NFTA_FLOWTABLE,
  NFTA_FLOWTABLE_HOOK,
} from '../constants.ts';
import type { Flowtable, FlowtableRef } from '../objects.ts';
import { checkName, readTableRef, required } from './objects.ts';

export function writeFlowtable(writer: MessageWriter, flowtable: Flowtable): void {
  writeFlowtableRef(writer, flowtable);
  writeHook(writer, flowtable);
  writer.u32Be(NFTA_FLOWTABLE.FLAGS, flowtable.isCounted ? NFT_FLOWTABLE_COUNTER : 0);
}

/** Deletes the flowtable, or with devices only these of its devices. */
export function writeFlowtableDeletion(writer: MessageWriter, flowtable: FlowtableRef | Flowtable): void {
  writeFlowtableRef(writer, flowtable);
  if ('devices' in flowtable) writeHook(writer, flowtable);
}

export function readFlowtable(message: NetlinkMessage): Flowtable {
  const a = AttributeMap.of(message);
  const hook = a.nestedMap(NFTA_FLOWTABLE.HOOK);
  return {
    table: readTableRef(message, a.string(NFTA_FLOWTABLE.TABLE)),
    name: required(a.string(NFTA_FLOWTABLE.NAME), 'flowtable', 'a name'),
    priority: hook?.i32Be(NFTA_FLOWTABLE_HOOK.PRIORITY) ?? 0,
    devices: readDevices(hook),
    isCounted: ((a.u32Be(NFTA_FLOWTABLE.FLAGS) ?? 0) & NFT_FLOWTABLE_COUNTER) !== 0,
  };
}

function writeFlowtableRef(writer: MessageWriter, { table, name }: FlowtableRef): void {
  writer.string(NFTA_FLOWTABLE.TABLE, checkName('table', table.name));
  writer.string(NFTA_FLOWTABLE.NAME, checkName('flowtable', name));
}

function writeHook(writer: MessageWriter, { priority, devices }: Flowtable): void {
  const hook = writer.beginNested(NFTA_FLOWTABLE.HOOK);
  writer.u32Be(NFTA_FLOWTABLE_HOOK.NUM, NF_NETDEV_INGRESS);
  writer.u32Be(NFTA_FLOWTABLE_HOOK.PRIORITY, priority >>> 0);
  if (devices.length > 0) {
    const list = writer.beginNested(NFTA_FLOWTABLE_HOOK.DEVS);
    for (const device of devices) writer.string(NFTA_DEVICE_NAME, checkName('device', device));
    writer.endNested(list);
  }
  writer.endNested(hook);
}

function readDevices(hook: AttributeMap | undefined): string[] {
  const devices: string[] = [];
  const list = hook?.nested(NFTA_FLOWTABLE_HOOK.DEVS);
  while (list?.next()) if (list.type === NFTA_DEVICE_NAME) devices.push(list.string());
  return devices;
}
