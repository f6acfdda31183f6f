/** Host and port, or the error in the words of Go's net.SplitHostPort. */
export type HostPort = { readonly host: string; readonly port: string } | { readonly fault: string };

/** Splits `host:port` or `[host]:port`; checks neither part. */
export function splitHostPort(text: string): HostPort {
  const colon = text.lastIndexOf(':');
  if (colon < 0) return { fault: 'missing port in address' };
  const port = text.slice(colon + 1);
  if (text.startsWith('[')) return splitBracketed(text, port);
  const host = text.slice(0, colon);
  if (host.includes(':')) return { fault: 'too many colons in address' };
  return strayBracket(host, port) ?? { host, port };
}

function splitBracketed(text: string, port: string): HostPort {
  const close = text.indexOf(']');
  if (close < 0) return { fault: "missing ']' in address" };
  const behind = text.slice(close + 1);
  if (behind === '') return { fault: 'missing port in address' };
  if (behind !== `:${port}`) {
    return { fault: behind.startsWith(':') ? 'too many colons in address' : 'missing port in address' };
  }
  const host = text.slice(1, close);
  return strayBracket(host, port) ?? { host, port };
}

function strayBracket(host: string, port: string): { fault: string } | undefined {
  if (host.includes('[') || port.includes('[')) return { fault: "unexpected '[' in address" };
  if (host.includes(']') || port.includes(']')) return { fault: "unexpected ']' in address" };
  return undefined;
}
