"""The APIs that a pod speaks, one thin file each: parse, translate, render. HTTP statuses live only here."""
