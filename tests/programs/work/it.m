rand('seed', 1); a = reshape(mod((1:250000) * 7919, 1009), 500, 500) / 1009;
printf('%.6f\n', sum(svd(a)));
b = a; for i = 1:5, b = a * b / norm(b, 1); end
printf('%.6e\n', sum(b(:)));
printf('%.4f\n', abs(sum(fft(a(:))(1:100))));
