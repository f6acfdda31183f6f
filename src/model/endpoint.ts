import { sameStrings } from './same-strings.ts';

/** One endpoint of one service port, as merged from all slices of the Service. */
export interface Endpoint {
  /** `ip:port`, IPv6 in brackets: identity within a service port, and its sort key (byte-wise). */
  readonly id: string;
  readonly ip: string;
  readonly port: number;
  /** On this node. */
  readonly isLocal: boolean;
  readonly ready: boolean;
  readonly serving: boolean;
  readonly terminating: boolean;
  readonly zoneHints?: readonly string[];
  readonly nodeHints?: readonly string[];
}

/** Whether all fields are equal. */
export function sameEndpoint(a: Endpoint, b: Endpoint): boolean {
  if (a === b) return true;
  return (
    a.id === b.id &&
    a.isLocal === b.isLocal &&
    a.ready === b.ready &&
    a.serving === b.serving &&
    a.terminating === b.terminating &&
    sameStrings(a.zoneHints, b.zoneHints) &&
    sameStrings(a.nodeHints, b.nodeHints)
  );
}
