/** The effect of each feature gate on this program. A test compares the names with those that the sources use. */
export const gateEffects: Readonly<Record<string, string>> = {
  AllAlpha: 'Sets every alpha gate that is not set by name.',
  AllBeta: 'Sets every beta gate that is not set by name.',
  AllowServiceExternalIPs: 'Off: `externalIPs` of Services are ignored.',
  ComponentFlagz: 'The page `/flagz` on the metrics address.',
  ComponentStatusz: 'The page `/statusz` on the metrics address.',
  KubeProxyIPVS: 'Off: `mode: ipvs` is refused.',
  KubeProxyNFTablesLocalhostNodePorts:
    'Node ports at loopback addresses in nftables mode, when `nodePortAddresses` asks for them; adds three metrics.',
  LoggingAlphaOptions: 'Split log streams and their buffers are accepted.',
  LoggingBetaOptions: 'Off: the log format `json` is refused.',
  WatchListClient:
    'Only if the configuration turns it on: lists from the API server are streamed. Otherwise they come in pages, which cost the API server less.',
};
