/**
 * A field of an object that cannot be used. Only that field is ignored; the rest of the object and all other objects
 * are used.
 */
export interface ObjectProblem {
  readonly kind: 'Service' | 'EndpointSlice' | 'ServiceCIDR';
  /** Empty for objects without a namespace. */
  readonly namespace: string;
  readonly name: string;
  /** Path of the field as the API spells it, such as `spec.ports[0].nodePort`. */
  readonly field: string;
  readonly value: string;
  /** What is wrong with the value, such as `is not an IP address`. */
  readonly fault: string;
}

/** One line that names the object, the field and the value. */
export function describeProblem(problem: ObjectProblem): string {
  const object = problem.namespace === '' ? problem.name : `${problem.namespace}/${problem.name}`;
  return `${problem.kind} ${escaped(object)}: ${problem.field}: ${JSON.stringify(problem.value)} ${problem.fault}`;
}

/** The text with control characters as JSON escapes them. */
function escaped(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => JSON.stringify(character).slice(1, -1));
}
