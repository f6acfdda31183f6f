import type { MessagePort } from 'node:worker_threads';
import type { Limits, Occupancy } from './admission.ts';
import type {
  ForwardedService,
  ForwarderOptions,
  ListenerState,
  Listening,
  Outlook,
  TrafficReport,
} from './forwarder.ts';
import type { Report } from './reports.ts';
import type { SocketAddress } from './socket-address.ts';

/** What a forwarding thread is started with. */
export interface ThreadData extends ThreadSettings {
  /** Requests come here. */
  readonly port: MessagePort;
  /** Becomes readable with every request. */
  readonly wakeFd: number;
}

export interface ThreadSettings extends ForwarderOptions {
  readonly limits: Limits;
  /** Where several threads share the limits. */
  readonly occupancy?: Occupancy;
}

/** To the thread. Those with a number are answered. */
export type ThreadRequest =
  | { readonly op: 'setService'; readonly key: string; readonly service: ForwardedService }
  | { readonly op: 'removeService'; readonly key: string }
  | { readonly op: 'listen'; readonly number: number; readonly id: string; readonly listening: Listening }
  | { readonly op: 'unlisten'; readonly id: string; readonly endConnections: boolean }
  | { readonly op: 'traffic'; readonly number: number }
  | { readonly op: 'listeners'; readonly number: number }
  | {
      readonly op: 'outlook';
      readonly number: number;
      readonly protocol: Listening['protocol'];
      readonly to: SocketAddress;
      readonly client: string;
    }
  | { readonly op: 'close'; readonly number: number };

/** From the thread. An error crosses as its message and code. */
export type ThreadReply =
  | { readonly op: 'report'; readonly report: Report }
  | { readonly op: 'listening'; readonly number: number; readonly port: number }
  | { readonly op: 'traffic'; readonly number: number; readonly traffic: TrafficReport }
  | {
      readonly op: 'listeners';
      readonly number: number;
      readonly listeners: ReadonlyMap<string, ListenerState>;
    }
  | { readonly op: 'outlook'; readonly number: number; readonly outlook: Outlook | undefined }
  | { readonly op: 'closed'; readonly number: number }
  | { readonly op: 'failed'; readonly number: number; readonly message: string; readonly code: string };
