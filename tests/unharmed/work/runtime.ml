(* The stack is full and the program goes on; bytes of all sizes come and go; exceptions; a child that is killed. *)
let rec deep n = 1 + deep (n + 1)
let () = try ignore (deep 0) with Stack_overflow -> print_endline "full"
let () =
  let sum = ref 0 in
  for i = 1 to 300 do sum := !sum + Bytes.length (Bytes.create (i * 4000)) done;
  Printf.printf "%d\n" !sum;
  Gc.full_major ();
  (try ignore (List.hd []) with Failure why -> print_endline why);
  exit 7
