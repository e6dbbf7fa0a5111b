import { useEffect, useState } from "./vendor/preact-htm.module.js";

// A store is a value that components follow.
export function store(value) {
  const followers = new Set();
  return {
    get: () => value,
    set(next) {
      value = next;
      followers.forEach((f) => f(next));
    },
    follow(f) {
      followers.add(f);
      return () => followers.delete(f);
    },
  };
}

export function useStore(s) {
  const [value, set] = useState(s.get());
  useEffect(() => {
    set(s.get());
    return s.follow((v) => set(v));
  }, [s]);
  return value;
}
