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
