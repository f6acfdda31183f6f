/** The name of a pod, without the namespace if that is the one of the Service. */
export function podText({
  service,
  pod,
}: {
  readonly service: string;
  readonly pod?: string | null;
}): string {
  if (pod === undefined || pod === null) return '-';
  const namespace = service.slice(0, service.indexOf('/') + 1);
  return pod.startsWith(namespace) ? pod.slice(namespace.length) : pod;
}
