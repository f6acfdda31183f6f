import { isNetlinkError } from './error.ts';
import { NetlinkFormatError, type NetlinkMessage } from './reader.ts';
import type { NetlinkRequest, NetlinkSocket } from './socket.ts';
import type { MessageWriter } from './writer.ts';

/** Generic netlink (linux/genetlink.h): families that are known by name and get their number when they are loaded. */

const GENL_ID_CTRL = 16;
const CTRL_CMD_NEWFAMILY = 1;
const CTRL_CMD_GETFAMILY = 3;
const CTRL_VERSION = 2;
const CTRL_ATTR_FAMILY_ID = 1;
const CTRL_ATTR_FAMILY_NAME = 2;

/** struct genlmsghdr: command, version, two bytes that are reserved. */
export const genericHeaderLength = 4;

/** Writes the header that every generic message begins with. */
export function writeGenericHeader(writer: MessageWriter, command: number, version: number): void {
  writer.raw(Uint8Array.of(command, version, 0, 0));
}

/** The command of a generic message. */
export function genericCommand(message: NetlinkMessage): number {
  const command = message.payload()[0];
  if (command === undefined) throw new NetlinkFormatError('generic netlink message without a header');
  return command;
}

/**
 * The message type of a family; undefined when the kernel does not have it. Asking makes the kernel load the module
 * of the family, where there is one.
 */
export async function resolveFamily(socket: NetlinkSocket, name: string): Promise<number | undefined> {
  const request: NetlinkRequest = {
    type: GENL_ID_CTRL,
    name: `finding generic netlink family ${name}`,
    write(writer) {
      writeGenericHeader(writer, CTRL_CMD_GETFAMILY, CTRL_VERSION);
      writer.string(CTRL_ATTR_FAMILY_NAME, name);
    },
  };
  let id: number | undefined;
  try {
    await socket.request(request, (message) => {
      id = readFamilyId(message) ?? id;
    });
  } catch (error) {
    if (isNetlinkError(error, 'ENOENT')) return undefined;
    throw error;
  }
  if (id === undefined) throw new NetlinkFormatError(`the kernel gave family ${name} no number`);
  return id;
}

function readFamilyId(message: NetlinkMessage): number | undefined {
  if (message.type !== GENL_ID_CTRL || genericCommand(message) !== CTRL_CMD_NEWFAMILY) return undefined;
  let id: number | undefined;
  for (const reader = message.attributes(genericHeaderLength); reader.next(); ) {
    if (reader.type === CTRL_ATTR_FAMILY_ID) id = reader.u16();
  }
  return id;
}
