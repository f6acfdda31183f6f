import type {
  CountersReport,
  DiffReport,
  EndpointList,
  ExplanationReport,
  ServiceList,
  StatusReport,
} from '../inspect/api.ts';

/** A packet to explain, in the words of the API. */
export interface AskedPacket {
  readonly source: string;
  readonly destination: string;
  readonly port: string;
  readonly protocol: string;
  readonly interface?: string;
}

/** Where answers come from: a running proxy, or manifests. Rejects with an error that can be shown as it is. */
export interface ReportSource {
  status(): Promise<StatusReport>;
  services(name?: string): Promise<ServiceList>;
  endpoints(name?: string): Promise<EndpointList>;
  explain(packet: AskedPacket): Promise<ExplanationReport>;
  diff(): Promise<DiffReport>;
  counters(): Promise<CountersReport>;
  close(): Promise<void>;
}
