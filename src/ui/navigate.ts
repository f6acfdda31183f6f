import { hashOf, type Route } from './route.ts';

/** Shows something else; the back button leads back. */
export function go(route: Route): void {
  location.hash = hashOf(route);
}

/** Changes the address of the view that is shown, without a step for the back button. */
export function stay(route: Route): void {
  location.replace(hashOf(route));
}
