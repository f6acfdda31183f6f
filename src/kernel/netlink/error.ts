import { hostLittleEndian } from '../../native/byte-order.ts';
import { errnoName, errnoText } from '../../native/system-error.ts';
import {
  align,
  headerLength,
  NLM_F_ACK_TLVS,
  NLM_F_CAPPED,
  NLMSG_DONE,
  NLMSGERR_ATTR_MISS_TYPE,
  NLMSGERR_ATTR_MSG,
  NLMSGERR_ATTR_OFFS,
} from './constants.ts';
import { AttributeReader, NetlinkFormatError, type NetlinkMessage } from './reader.ts';

/** The kernel's answer to a request: an errno value (0 for success) and the extended acknowledgement. */
export interface Acknowledgement {
  readonly errno: number;
  /** The kernel's error text; empty when it sent none. */
  readonly text: string;
  /** Offset of the refused attribute from the start of its message. */
  readonly offset?: number;
  /** Type of a required attribute that the request lacks. */
  readonly missing?: number;
}

/** The kernel refused a request, did not answer it, or disturbed a dump too often. */
export class NetlinkError extends Error {
  /** The name of the request. */
  readonly action: string;
  /** Errno name, such as `ENOENT`. */
  readonly code: string;
  readonly errno: number;
  /** The kernel's error text; empty when it sent none. */
  readonly text: string;
  readonly offset?: number;

  constructor(action: string, ack: Acknowledgement) {
    super(`${action}: ${describe(ack)}`);
    this.name = 'NetlinkError';
    this.action = action;
    this.code = errnoName(ack.errno);
    this.errno = ack.errno;
    this.text = ack.text;
    if (ack.offset !== undefined) this.offset = ack.offset;
  }
}

/** Whether an error is a refusal with this errno name. */
export function isNetlinkError(error: unknown, code: string): error is NetlinkError {
  return error instanceof NetlinkError && error.code === code;
}

/** Reads NLMSG_ERROR, or the status in NLMSG_DONE at the end of a dump. */
export function readAcknowledgement(message: NetlinkMessage): Acknowledgement {
  const payload = message.payload();
  // Old kernels end some dumps with a DONE without a status.
  if (message.type === NLMSG_DONE && payload.length < 4) return { errno: 0, text: '' };
  if (payload.length < 4) throw new NetlinkFormatError(`acknowledgement of ${payload.length} bytes`);
  const view = new DataView(payload.buffer, payload.byteOffset, payload.length);
  const errno = 0 - view.getInt32(0, hostLittleEndian);
  if (!(message.flags & NLM_F_ACK_TLVS)) return { errno, text: '' };
  return { errno, ...readExtended(payload, extendedStart(message, view)) };
}

/** Offset of the extended part. It follows the quoted request, which is only a header when the answer is capped. */
function extendedStart(message: NetlinkMessage, view: DataView): number {
  if (message.type === NLMSG_DONE) return 4;
  if (view.byteLength < 4 + headerLength)
    throw new NetlinkFormatError(`acknowledgement of ${view.byteLength} bytes`);
  const quoted = message.flags & NLM_F_CAPPED ? headerLength : view.getUint32(4, hostLittleEndian);
  return 4 + align(Math.min(quoted, view.byteLength));
}

function readExtended(payload: Uint8Array, start: number): Omit<Acknowledgement, 'errno'> {
  let text = '';
  const found: { offset?: number; missing?: number } = {};
  const reader = AttributeReader.over(payload.subarray(Math.min(start, payload.length)));
  while (reader.next()) {
    if (reader.type === NLMSGERR_ATTR_MSG) text = reader.string();
    else if (reader.type === NLMSGERR_ATTR_OFFS) found.offset = reader.u32();
    else if (reader.type === NLMSGERR_ATTR_MISS_TYPE) found.missing = reader.u32();
  }
  return { text, ...found };
}

function describe(ack: Acknowledgement): string {
  const words = ack.text === '' ? errnoText(ack.errno) : ack.text;
  const missing = ack.missing === undefined ? '' : `, attribute ${ack.missing} is missing`;
  return `${errnoName(ack.errno)} (${words}${missing})`;
}
